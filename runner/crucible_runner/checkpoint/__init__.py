"""Checkpoints: their files, the proof that one is complete, and the transfer to and from the store (docs/guides/checkpoints.md).

scan.py        lists the files of the directory
names.py       reads file names: generations, pieces, records, unfinished files
pointers.py    reads small texts that name a checkpoint next to them
records.py     recognizes files that only grow
generations.py groups files that were written together, and finds when the next save began
pace.py        measures the time and the steps between saves over all attempts
formats/       one file per format that can prove itself whole or torn
evidence.py    decides whether a generation is complete, provisional, or neither, and why
scanner.py       scans the directory repeatedly and combines the modules above
uploads.py     uploads the checkpoints that count, the manifest last
restore.py     chooses the checkpoint to restore, and the next candidate after it
experience.py  reads how programs fared with the checkpoints that they were given
history.py     records that
overdue.py     warns when no checkpoint appears, with the reason
"""
