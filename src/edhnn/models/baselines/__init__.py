"""The baselines that ED-HNN is compared with."""
