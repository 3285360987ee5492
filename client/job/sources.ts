/** Endings of files that may show which files a program reads and writes. */
export const SOURCE_ENDINGS: ReadonlySet<string> = new Set([
  '.py',
  '.sh',
  '.ipynb',
  '.yaml',
  '.yml',
  '.toml',
  '.json',
  '.cfg',
  '.ini',
])
/** Larger files are data. */
export const SOURCE_BYTES_MAX = 512 * 1024
/** Limit for a search without noticeable delay; for a larger folder, only certain findings are reported. */
export const SOURCES_MAX = 300
