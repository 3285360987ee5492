import type { ContextEntry } from '@aws-sdk/client-iam'

/** The context of a call in the form of IAM's simulation. */
export function contextOf(context: Readonly<Record<string, string>>): ContextEntry[] {
  return Object.entries(context).map(([ContextKeyName, value]) => ({
    ContextKeyName,
    ContextKeyType: 'string',
    ContextKeyValues: [value],
  }))
}
