"""``python -m kernelwright`` is the command line."""

from kernelwright.cli import main

if __name__ == "__main__":
    main()
