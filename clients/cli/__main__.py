"""`python -m clients.cli` is `headwater`."""

from clients.cli.main import main

if __name__ == "__main__":
    main()
