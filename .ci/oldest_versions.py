"""Print the oldest version of everything that is declared, one requirement per line, for pip to install exactly these."""

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
DECLARED = re.compile(r"(?P<name>[A-Za-z0-9._-]+(\[[^\]]*\])?)>=(?P<version>[^,;\s]+)")


def pinned(requirements: Sequence[str]) -> Iterator[str]:
    """Yield requirements with their lower bound as the version itself."""
    for requirement in requirements:
        found = DECLARED.match(requirement)
        if found is None:
            raise ValueError(f"A requirement must say its oldest version, as in numpy>=2.0; it is {requirement!r}.")
        yield f"{found['name']}=={found['version']}"


def main(*extras: str) -> None:
    """Print what the project needs, with what each of some extras adds."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    for group in (project["dependencies"], *(optional[extra] for extra in extras)):
        sys.stdout.writelines(f"{line}\n" for line in pinned(group))


if __name__ == "__main__":
    main(*sys.argv[1:])
