"""`python -m turnout`: the command line."""

from turnout.cli import main

if __name__ == "__main__":  # processes of a pool import this module too
    main()
