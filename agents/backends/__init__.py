"""Backends: what stands behind `agents.chat.ChatModel`. Each is a class of keyword-only options;
``seed`` comes from the campaign where it is asked for.
"""
