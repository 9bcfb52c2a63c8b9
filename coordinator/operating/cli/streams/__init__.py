"""What the command does with standard output and standard error as it finds them.

Their state, and all they carry as log records; what is printed is up to the commands.
"""
