"""Makes the reference of the module from its docstrings: reference.py FOLDER. Needs pdoc (pip install pdoc)."""

import sys
from pathlib import Path

import pdoc

import pleachdb

MODULES = ["pleachdb", "pleachdb.errors"]


def main(folder: str) -> None:
    missing = [name for name in pleachdb.__all__ if not (getattr(pleachdb, name).__doc__ or "").strip()]
    if missing:
        sys.exit(f"without a docstring: {', '.join(missing)}")
    pdoc.render.configure(docformat="markdown", show_source=False)
    pdoc.pdoc(*MODULES, output_directory=Path(folder))
    print(f"{folder}/pleachdb.html")


if __name__ == "__main__":
    main(*sys.argv[1:])
