eval_interval = 250
always_save_checkpoint = False
batch_size = 64
max_iters = 5000
