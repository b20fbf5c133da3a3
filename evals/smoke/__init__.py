"""The main job, end to end: real processes, a real conversation, and what must be true of it afterwards.

`make smoke` gives it services of its own. One module a subject: `stage` sets up and takes down, `story` is
what is told, `visitor` is a browser without a screen, `play` tells the story; the rest are checks.
"""
