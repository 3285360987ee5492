import { randomBytes } from 'node:crypto'

/** A secret that is like no other text, and that has other letters when it is encoded for a URL. */
export function makeCanary(): string {
  return `canary/${randomBytes(12).toString('hex')}+&=%~`
}

/** Everything that a look into one place has found there, as bytes: texts, and the payloads in them. */
export interface Place {
  name: string
  content: unknown
}

/** The places that hold a secret, each with how it is written there: in clear, URL-encoded, escaped, or in Base64. */
export function findCanary(canary: string, places: readonly Place[]): string[] {
  const forms = formsOf(canary)
  return places.flatMap(({ name, content }) => {
    const text = textOf(content)
    // A form of a service sends Base64 in letters of a URL.
    const texts = text.includes('%') ? [text, text.replace(/%2B/gi, '+').replace(/%2F/gi, '/')] : [text]
    return forms
      .filter(({ words }) => words.some((word) => texts.some((each) => each.includes(word))))
      .map(({ form }) => `${name}: ${form}`)
  })
}

function formsOf(canary: string): { form: string; words: string[] }[] {
  const url = encodeURIComponent(canary)
  return [
    { form: 'in clear', words: [canary, JSON.stringify(canary).slice(1, -1)] },
    {
      form: 'URL-encoded',
      words: [url, encodeURIComponent(url), String(new URLSearchParams({ canary })).slice(7)],
    },
    { form: 'in Base64', words: inBase64(canary).flatMap((word) => [word, urlSafe(word)]) },
  ]
}

/** What a secret becomes in the Base64 of a longer text: it depends on how many bytes stand before it. */
function inBase64(canary: string): string[] {
  return [0, 1, 2].map((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(canary)])
    // Letters that hold bits of neighbours too are left out.
    const from = Math.ceil((before * 8) / 6)
    return bytes.toString('base64').slice(from, Math.floor((bytes.length * 8) / 6))
  })
}

const urlSafe = (word: string): string => word.replaceAll('+', '-').replaceAll('/', '_')

/** All strings and bytes in a value, however deep. */
function textOf(content: unknown): string {
  const texts: string[] = []
  const seen = new Set<unknown>()
  const collect = (value: unknown): void => {
    if (typeof value === 'string') texts.push(value)
    else if (value instanceof Uint8Array) texts.push(Buffer.from(value).toString('latin1'))
    else if (typeof value === 'object' && value !== null && !seen.has(value)) {
      seen.add(value)
      if (value instanceof Map) for (const pair of value) collect(pair)
      for (const [key, each] of Object.entries(value)) {
        texts.push(key)
        collect(each)
      }
    }
  }
  collect(content)
  return texts.join('\n')
}
