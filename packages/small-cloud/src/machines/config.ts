/** Returns the folders of this host's programs. Machines get links to some of these programs and nothing else of this environment. */
export function hostPath(): string {
  return process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin'
}
