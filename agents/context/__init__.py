"""What a model sees: the parts of a prompt, how much room each may take and what is cut first.

parts         the table of parts, with priorities and sizes
safe          quoted text that cannot pose as anything else, and no secret in it
device        the machine's figures
profile       what is known of the parent's run
variety       candidates that differ from each other
shrink        cutting a prompt to a budget of tokens
library       passages that may be worth knowing, searched by words
pages         where passages come from: directives, the device, files
winners       and earlier winners of other campaigns
prompter      all of it, as drivers use it
"""
