"""The world: records, problems, spaces, landscapes, the compiler, and the Gymnasium face.

Folders from the top, each importing only those below it: ``gym`` → ``problems`` → ``spaces`` →
``landscape`` → ``compiler`` → ``protocols`` → ``records`` → ``types``.
"""
