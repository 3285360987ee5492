import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'

/** The executable files with a name on PATH, in its order. */
export function onPath(name: string, env: NodeJS.ProcessEnv): string[] {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  return [...new Set(folders)].map((folder) => resolve(folder, name)).filter(isExecutableFile)
}

function isExecutableFile(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
