"""`make cluster`: the services of docker-compose.yml as processes of this machine, without Docker.

`composition` reads the file, `plan` gives each container an address, folders and a program of this machine, and
`start` runs the plan. Commands and environments are those of the file. Three things stand for what Docker does:

- Each container has a loopback address of its own (127.x.y.z), so that all use the ports of the file. Names of
  services become addresses.
- Paths of volumes, and of the folder that processes may write, become folders of the data folder.
- If this runs as root, the processes run as another user, as they do in the image.
"""
