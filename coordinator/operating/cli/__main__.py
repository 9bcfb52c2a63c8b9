"""Makes ``python -m coordinator.operating.cli`` work where the ``txbatch`` script is not on the path."""

from coordinator.operating.cli.entry import main

if __name__ == "__main__":
    main()
