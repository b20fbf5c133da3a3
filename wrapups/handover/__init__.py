"""The hand-over of finished sessions and days to an external memory, where an owner has agreed to it.

Off unless the installation has a key and the tenant's owner has said yes. What is handed over is a row with a state;
what is deleted here is deleted there, by a row of its own that outlives what it deletes.
"""
