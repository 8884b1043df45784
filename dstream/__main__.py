"""`python -m dstream` is the command `dstream`."""

from dstream.command import main

if __name__ == "__main__":
    main()
