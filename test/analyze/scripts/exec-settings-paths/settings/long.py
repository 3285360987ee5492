# a longer run with its own folder
run_dir = "runs/long"
rounds = 50_000
