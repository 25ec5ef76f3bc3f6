"""Print every sentence that a user can see, by file: what is raised, printed, drawn or shown, and the docstrings.

Read it aloud before a release. What is interpolated stands in braces, as in the code. A docstring of the reference, which has
sections, is printed whole; of any other, the first paragraph.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "orthocal"
WORDS = re.compile(r"[A-Za-z]{2,}[^A-Za-z]* .*[A-Za-z]|^\W*[A-Z][a-z]+[.?!:]$")
"""At least two words, or one that stands as a sentence does."""
SECTION = re.compile(r"^-{3,}$", re.MULTILINE)
MARKUP = re.compile(r"{#.*?#}|<!--.*?-->|<(script|style)\b.*?</\1>", re.DOTALL)
TAG = re.compile(r"<[^>]*>|{%.*?%}")
SHOWN = {"help", "label", "title", "xlabel", "ylabel", "prompt", "metavar"}
"""Keywords whose values are shown even where they are a single word."""
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def written(node: ast.AST) -> str | None:
    """Return a string as it is written, with what is interpolated in braces; nothing for what is no string."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(braced(part) for part in parts)
        case ast.FormattedValue(value=value):
            return f"{{{ast.unparse(value)}}}"
        case ast.BinOp(op=ast.Add(), left=left, right=right) if (written(left), written(right)) != (None, None):
            return braced(left) + braced(right)
    return None


def braced(node: ast.AST) -> str:
    """Return a string as it is written, and other code in braces."""
    text = written(node)
    return f"{{{ast.unparse(node)}}}" if text is None else text


def strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the strings of a piece of code with their lines."""
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
        children.remove(node.body[0])
        yield node.body[0].lineno, '"""' + (text if SECTION.search(text) else text.split("\n\n")[0])
    for child in children:
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue  # a comment on what stands above it
        text = written(child)
        shown = isinstance(node, ast.keyword) and node.arg in SHOWN
        if text is not None and (shown or WORDS.search(text)):
            yield child.lineno, text  # type: ignore[attr-defined]
        if not isinstance(child, ast.Constant):
            yield from nested(child)


def nested(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the strings inside a node; of one that is a string itself, those inside of what it interpolates."""
    if written(node) is None:
        yield from strings(node)
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FormattedValue):
            yield from strings(child)
        elif not isinstance(child, ast.Constant):
            yield from nested(child)


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield what a file of code or of markup shows."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from strings(ast.parse(text))
        return
    blank = MARKUP.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(blank.splitlines(), start=1):
        if WORDS.search(shown := TAG.sub(" ", line)):
            yield number, shown


def main() -> None:
    """Print the sentences, each once per file."""
    for path in sorted((*SOURCE.rglob("*.py"), *SOURCE.rglob("*.html"))):
        found = {" ".join(text.split()): line for line, text in reversed(list(lines_of(path)))}
        if found:
            sys.stdout.write(f"\n{path.relative_to(SOURCE.parent).as_posix()}\n")
        for text, line in sorted(found.items(), key=lambda item: item[1]):
            sys.stdout.write(f"{line:>5}  {text}\n")


if __name__ == "__main__":
    main()
