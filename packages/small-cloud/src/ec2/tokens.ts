/** Client tokens: a repeated call gets the same answer and creates nothing new. */
import { createHash } from 'node:crypto'
import { ApiError } from '../wire/errors'

interface Used<T> {
  fingerprint: string
  result: T
}

const TOKEN_LENGTH_MAX = 64

export class Tokens {
  private readonly used = new Map<string, Used<unknown>>()

  /** Whether a call with this token has succeeded: its repetition is answered even if it would be refused now. */
  knows(scope: string, token: string | undefined): boolean {
    return this.used.has(`${scope}/${token ?? ''}`)
  }

  /**
   * Performs the action once for each token of a scope. The same token with other parameters is `IdempotentParameterMismatch`. A failed
   * action does not use up the token.
   *
   * @param scope the action and its area: the region, or a zone for launches into one
   */
  once<T>(
    scope: string,
    { token, parameters }: { token: string | undefined; parameters: unknown },
    act: () => T,
  ): T {
    if (token === undefined || token === '') return act()
    // eslint-disable-next-line no-control-regex -- the first of the ASCII characters are among them
    if (token.length > TOKEN_LENGTH_MAX || /[^\x00-\x7f]/.test(token))
      throw new ApiError('InvalidClientToken', 'The client token must be at most 64 ASCII characters')
    const key = `${scope}/${token}`
    const fingerprint = createHash('sha256').update(canonical(parameters)).digest('hex')
    const before = this.used.get(key)
    if (before !== undefined) {
      if (before.fingerprint === fingerprint) return before.result as T
      throw new ApiError(
        'IdempotentParameterMismatch',
        'Arguments on this idempotent request are inconsistent with arguments used in previous request(s).',
      )
    }
    const result = act()
    this.used.set(key, { fingerprint, result })
    return result
  }
}

/** JSON with sorted keys, so that the order of fields does not matter. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  )
}
