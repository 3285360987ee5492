import { z } from 'zod'
import { ApiError } from '../wire/errors'

/** The paging fields of SSM lists. */
export function paging(most: number): {
  MaxResults: z.ZodDefault<z.ZodInt>
  NextToken: z.ZodOptional<z.ZodString>
} {
  return { MaxResults: z.int().min(1).max(most).default(most), NextToken: z.string().optional() }
}

export function pageOf<T>(
  items: readonly T[],
  { MaxResults, NextToken }: { MaxResults: number; NextToken?: string | undefined },
): { items: T[]; NextToken?: string } {
  const from = NextToken === undefined ? 0 : Number(Buffer.from(NextToken, 'base64').toString())
  if (!Number.isInteger(from) || from < 0)
    throw new ApiError('InvalidNextToken', 'The specified token is not valid.')
  const end = from + MaxResults
  return {
    items: items.slice(from, end),
    ...(end < items.length ? { NextToken: Buffer.from(String(end)).toString('base64') } : {}),
  }
}
