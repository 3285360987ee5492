/** The examples in a command's help. */
export function examples(...lines: readonly [command: string, meaning: string][]): string {
  const width = Math.max(...lines.map(([command]) => command.length))
  const shown = lines.map(([command, meaning]) => `  ${command.padEnd(width)}  ${meaning}`)
  return ['', 'Examples:', ...shown].join('\n')
}
