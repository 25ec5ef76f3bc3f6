"""Pictures of the pages, drawn when the pages are built, by the very code the pages show.

An image below a block of python is what that block has drawn: all blocks of such a page run in order, and the current figure
is kept under the name the image has. No picture is kept in the repository.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

STEP = re.compile(
    r"^```python\n(?P<code>.*?)^```(?:\s*^!\[[^\]]*\]\((?P<picture>pictures/[^)]+)\))?",
    re.DOTALL | re.MULTILINE,
)
"""A block, with the picture below it if there is one; printed output may not stand between them."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pictures of every page to the files of the site."""
    for page in Path(config.docs_dir).rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        if "](pictures/" in text:
            for name, content in drawn(text, page.name).items():
                files.append(File.generated(config, name, content=content))
    return files


def drawn(text: str, name: str) -> dict[str, bytes]:
    """Run the blocks of a page; return its pictures by name."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    names: dict[str, Any] = {"__name__": "__main__"}
    pictures: dict[str, bytes] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
        redirect_stdout(io.StringIO()),
    ):
        for step in STEP.finditer(text):
            exec(compile(step["code"], name, "exec"), names)  # noqa: S102  # the page's own code
            if step["picture"]:
                ending = os.path.splitext(step["picture"])[1].removeprefix(".")  # noqa: PTH122
                content = io.BytesIO()
                plt.gcf().savefig(content, format=ending, metadata={"Date": None})
                pictures[step["picture"]] = content.getvalue()
                plt.close("all")
    return pictures
