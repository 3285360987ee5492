import { readdirSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { nearest } from '../../intake/nearest'

export const JOB_FILES = ['.yaml', '.yml', '.json']

/** Says that a file does not exist, with the file that was probably meant. */
export function noFileHere(file: string, what: string): string {
  if (/^(?:https?|git|ssh):\/\//.test(file))
    return `${file} is an address, and only files of this computer are submitted. Clone or download it first.`
  const names = namesIn(dirname(file))
  if (names.includes(basename(file))) return `${file} is not a file that can be read. Name a ${what}.`
  const near = nearest(basename(file), names)
  const meant = near === undefined ? '' : ` Did you mean ${join(dirname(file), near)}?`
  return `There is no file ${file} here.${meant || ` Name a ${what} by its path from ${process.cwd()}.`}`
}

/** Job files and scripts of a folder, as the end of a sentence; empty without any. */
export function suchAs(folder: string, endings = [...JOB_FILES, '.py']): string {
  const names = namesIn(folder).filter((name) => endings.includes(extname(name).toLowerCase()))
  return names.length === 0
    ? ''
    : `, such as ${names
        .slice(0, 3)
        .map((name) => join(folder, name))
        .join(', ')}`
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
