"""``python -m coordinator.operating.cli``, for where the ``txbatch`` script is not on the path."""

from coordinator.operating.cli.entry import main

if __name__ == "__main__":
    main()
