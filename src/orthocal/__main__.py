"""``python -m orthocal`` is ``orthocal``."""

from orthocal.cli import main

if __name__ == "__main__":
    main()
