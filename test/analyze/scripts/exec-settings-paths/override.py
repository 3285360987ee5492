import sys

for word in sys.argv[1:]:
    if word.endswith(".py"):
        exec(open(word).read())
    else:
        name, value = word.lstrip("-").split("=")
        globals()[name] = type(globals()[name])(value)
