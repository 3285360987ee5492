"""What a checkpoint is, when it is complete, and how it reaches the store and comes back (docs/guides/checkpoints.md).

scan.py        what the directory holds
names.py       what names tell: generations, pieces, records, unfinished files
pointers.py    small texts that name a checkpoint next to them
records.py     files that only grow
generations.py which files were written together, and when the next save began
pace.py        how far apart saves are, in time and in steps, by all attempts
formats/       one file per format that can prove itself whole or torn
evidence.py    complete, provisional, or neither, and why
looks.py       looks at the directory again and again and joins the above
uploads.py     uploads what counts, the manifest last
restore.py     which checkpoint comes back, and which one after it
experience.py  what programs made of the checkpoints that they were given
history.py     writes that down
overdue.py     says when no checkpoint comes, and why
"""
