/** Returns the folders of this host's programs. Machines get links to some of these programs and nothing else of this environment. */
export function hostPath(): string {
  // The last folders are those of every system: the user of machines may lack access to the first ones.
  return [process.env['PATH'], '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin'].filter(Boolean).join(':')
}
