"""Families of grouped-query attention: what Qwen3, Qwen3-MoE and Llama share; what differs is in their folders."""
