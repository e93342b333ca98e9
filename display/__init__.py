"""What the command line shows: live progress, and reports as text. It draws; ``cli.py`` prints."""
