export { formatBytes } from '../core/resources'

/** `1 step`, `3 steps`. */
export function countOf(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`
}

/** Returns a path in which `*` replaces each number. */
export function templateOf(path: string): string {
  return path.replace(/\d+/g, '*')
}

/** File names, each kind once. */
export function namesOf(paths: readonly string[]): string[] {
  const kinds = new Map<string, string[]>()
  for (const path of paths) kinds.set(templateOf(path), [...(kinds.get(templateOf(path)) ?? []), path])
  return [...kinds].map(([kind, all]) => (all.length === 1 ? all[0]! : kind))
}
