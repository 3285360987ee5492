import { describe, expect, it } from '@jest/globals'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseLease, parseManifest } from '../../intake/documents'
import { DOCUMENT_PARSERS, kindOfDocument } from '../support/document-parsers'

const GOLDEN = join(__dirname, '..', 'runner', 'golden')

/** Kinds that only the machine reads. */
const NOT_OURS = ['grant', 'hand-over', 'helper', 'notice', 'sealed', 'README']

function goldenFiles(folder: string): { name: string; kind: string | undefined; text: string }[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => ({
      name,
      kind: kindOfDocument(name),
      text: readFileSync(join(folder, name), 'utf8'),
    }))
}

const valid = goldenFiles(GOLDEN)
const invalid = goldenFiles(join(GOLDEN, 'invalid'))

describe('golden documents', () => {
  it('are all of a kind that somebody reads', () => {
    const strange = [...valid, ...invalid].filter(
      ({ name, kind }) => kind === undefined && !NOT_OURS.some((other) => name.startsWith(other)),
    )
    expect(strange.map(({ name }) => name)).toEqual([])
    expect(new Set(valid.map(({ kind }) => kind).filter(Boolean))).toEqual(
      new Set(Object.keys(DOCUMENT_PARSERS)),
    )
  })

  it.each(valid.filter(({ kind }) => kind !== undefined))(
    '$name is read as it stands',
    ({ name, kind, text }) => {
      const read = DOCUMENT_PARSERS[kind!]!(text)
      const isLater = name.includes('later-version')
      if (isLater) expect(JSON.parse(text)).toMatchObject(read as Record<string, unknown>)
      else expect(read).toEqual(JSON.parse(text))
    },
  )

  it.each(invalid.filter(({ kind }) => kind !== undefined))('$name is refused in words', ({ kind, text }) => {
    expect(() => DOCUMENT_PARSERS[kind!]!(text)).toThrow(expect.objectContaining({ errorCode: 'document' }))
  })
})

describe('documents', () => {
  it('drop the fields of a later version', () => {
    const text = readFileSync(join(GOLDEN, 'lease-with-fields-of-a-later-version.json'), 'utf8')
    expect(parseLease(text)).toEqual({ seq: 412, answersBeat: 98765, ttlMs: 3_600_000 })
  })

  it.each(['', '{', 'null', '[]', '"x"', '7', '\0', '{"seq": NaN}'])(
    'that read %j are an error of their own kind',
    (text) => {
      for (const [kind, parse] of Object.entries(DOCUMENT_PARSERS)) {
        expect(() => parse(text)).toThrow(expect.objectContaining({ errorCode: 'document' }))
        expect(() => parse(text)).toThrow(new RegExp(`^not a valid ${kind.replace('-', ' ')}`))
      }
    },
  )

  it('name every field that is wrong', () => {
    expect(() => parseLease('{"seq": -1, "answersBeat": 1.5}')).toThrow(
      /^not a valid lease: seq: .*; answersBeat: .*; ttlMs: .*$/,
    )
    const manifest = {
      ...(JSON.parse(valid.find(({ name }) => name === 'manifest-full.json')!.text) as object),
      files: [{}],
    }
    expect(() => parseManifest(JSON.stringify(manifest))).toThrow(/files\[0\]\.path: /)
  })

  it.each([
    ['latest', 'checkpoint-120', true],
    ['a/latest', '../b/c', true],
    ['a/b/latest', '../..', true],
    ['latest', '.', true],
    ['latest', '..', false],
    ['a/latest', '../../a/x', false],
    ['latest', '/etc/passwd', false],
    ['latest', 'a/../../b', false],
    ['latest', '', false],
    ['../latest', 'x', false],
  ])('take a link %s -> %s: %s', (path, target, isTaken) => {
    const manifest = JSON.parse(valid.find(({ name }) => name === 'manifest-full.json')!.text) as object
    const text = JSON.stringify({ ...manifest, links: [{ path, target }] })
    if (isTaken) expect(parseManifest(text).links).toEqual([{ path, target }])
    else expect(() => parseManifest(text)).toThrow(/links\[0\]\./)
  })
})
