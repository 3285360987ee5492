import csv
import sys

source, target = sys.argv[1:3]
with open(source) as f, open(target, "w") as g:
    writer = csv.writer(g)
    for row in csv.reader(f):
        if len(row) > 3 and row[2].strip():
            writer.writerow([cell.strip().lower() for cell in row])
