/**
 * The path and query of a request, written anew from their parts, so that every reader sees the same; `undefined` if a part leads elsewhere
 * or is empty. Parts may contain encoded slashes.
 */
export function readTarget(url: string): string | undefined {
  if (!url.startsWith('/')) return undefined
  const at = url.indexOf('?')
  try {
    const parts = url
      .slice(1, at < 0 ? url.length : at)
      .split('/')
      .map(decodeURIComponent)
    if (parts.some((part, index) => isAstray(part) || (part === '' && index < parts.length - 1)))
      return undefined
    const query = at < 0 ? '' : new URLSearchParams(url.slice(at + 1)).toString()
    return `/${parts.map(encodeURIComponent).join('/')}${query === '' ? '' : `?${query}`}`
  } catch {
    return undefined
  }
}

function isAstray(part: string): boolean {
  return part.split(/[/\\]/).some((each) => each === '.' || each === '..') || part.includes('\0')
}
