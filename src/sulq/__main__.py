"""`python -m sulq` is `sulq`."""

from sulq.cli import main

if __name__ == "__main__":
    main()
