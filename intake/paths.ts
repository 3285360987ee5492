/** The longest path of Linux. */
const PATH_MAX = 4095

/** True for a path that stays below its folder: relative, not too long, no `.`, `..` or empty parts, no NUL. */
export function isInnerPath(path: string): boolean {
  if (path.length > PATH_MAX || path.includes('\0')) return false
  return path.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
}
