"""`python -m clients.cli` is `headwater`."""

from clients.cli import main

if __name__ == "__main__":
    main()
