/** Where this host keeps its programs; machines get links to some of them and nothing else of this environment. */
export function hostPath(): string {
  return process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin'
}
