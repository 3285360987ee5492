import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'

type Packages = Record<string, { optionalDependencies?: Record<string, string> }>

/** Whether a package that this one names was written into the lock, next to it or above it. */
function isLocked(packages: Packages, from: string, name: string): boolean {
  const inner = from === '' ? '' : `${from}/`
  if (`${inner}node_modules/${name}` in packages) return true
  return (
    from !== '' && isLocked(packages, from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/'))), name)
  )
}

describe('package-lock.json', () => {
  // `npm ci` refuses it otherwise. npm leaves such packages out silently when a registry does not have them.
  it('holds the parts for other platforms too', () => {
    const text = readFileSync(join(__dirname, '../../package-lock.json'), 'utf8')
    const { packages } = JSON.parse(text) as { packages: Packages }
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter((name) => !isLocked(packages, path, name)),
    )
    expect(missing).toEqual([])
  })
})
