import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

env = make_vec_env("LunarLander-v2", n_envs=16)
model = PPO("MlpPolicy", env, n_steps=1024, batch_size=64, n_epochs=4, verbose=1)
model.learn(total_timesteps=1_000_000)
model.save("ppo_lunar")
