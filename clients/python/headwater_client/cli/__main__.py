"""`python -m headwater_client.cli` is `headwater`."""

from headwater_client.cli import main

if __name__ == "__main__":
    main()
