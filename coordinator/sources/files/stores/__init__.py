"""Where files are: a local file system or one of Arrow's, plain or compressed, all read through one interface."""
