"""Agents: drivers that ask a language model, one small file each, composed of `agents.desk.Desk`
and `agents.talk.Talk`.
"""
