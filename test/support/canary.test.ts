import { describe, expect, it } from '@jest/globals'
import { findCanary, makeCanary } from './canary'

const canary = makeCanary()
const base64 = (text: string): string => Buffer.from(text).toString('base64')
const holding = (content: unknown): string[] => findCanary(canary, [{ name: 'here', content }])

describe('the search for a secret', () => {
  it.each<[string, unknown, string]>([
    ['a text', `x${canary}y`, 'in clear'],
    ['bytes of a payload', { payloads: [{ data: new TextEncoder().encode(`"${canary}"`) }] }, 'in clear'],
    ['a key', new Map([[{ [canary]: 1 }, 2]]), 'in clear'],
    ['a URL', `?a=${encodeURIComponent(canary)}`, 'URL-encoded'],
    ['a form', String(new URLSearchParams({ Value: canary })), 'URL-encoded'],
    ['Base64', base64(canary), 'in Base64'],
    ['Base64 of a longer text', base64(`ab${canary}cd`), 'in Base64'],
    ['Base64 of another length', base64(`abc${canary}`), 'in Base64'],
    ['Base64 for URLs', Buffer.from(`a${canary}`).toString('base64url'), 'in Base64'],
    [
      'Base64 in a form',
      String(new URLSearchParams({ UserData: base64(`#!/bin/sh\n${canary}\n`) })),
      'in Base64',
    ],
  ])('finds it in %s', (_, content, form) => {
    expect(holding(content)).toEqual([`here: ${form}`])
  })

  it('finds nothing where it is not', () => {
    const other = makeCanary()
    expect(holding([other, base64(other), encodeURIComponent(other), canary.slice(1)])).toEqual([])
  })
})
