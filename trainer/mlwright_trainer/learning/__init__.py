"""From batches to weights: fine-tuning, PPO, checkpoints and replay; the only room with torch besides inference."""
