batch_size = 32
max_iters = 3000
eval_interval = 250
