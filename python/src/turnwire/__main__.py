"""``python -m turnwire``: the command line."""

from turnwire.cli import main

if __name__ == "__main__":
    main()
