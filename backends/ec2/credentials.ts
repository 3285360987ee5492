import type { CredentialSource } from '../credentials'

/** The long-lived keys of AWS. Roles, single sign-on and machine credentials have no place that could be shown. */
export function awsCredentials(environment: Record<string, string | undefined>): CredentialSource {
  const profile = environment['AWS_PROFILE']?.trim() || 'default'
  return {
    variables: ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'],
    file: {
      paths: [environment['AWS_SHARED_CREDENTIALS_FILE']?.trim() || '~/.aws/credentials'],
      read: (text) => {
        const values = sectionOf(text, profile)
        return {
          AWS_ACCESS_KEY_ID: values['aws_access_key_id'],
          AWS_SECRET_ACCESS_KEY: values['aws_secret_access_key'],
        }
      },
    },
  }
}

/** The keys of one section of an INI file. */
function sectionOf(text: string, name: string): Record<string, string> {
  const values: Record<string, string> = {}
  let isIn = false
  for (const line of text.split('\n')) {
    const section = /^\[(.*)\]$/.exec(line.trim())
    if (section !== null) isIn = section[1]!.trim() === name
    const [, key, value] = /^([\w-]+)\s*=(.*)$/.exec(line.trim()) ?? []
    if (isIn && key !== undefined) values[key.toLowerCase()] = value!.trim()
  }
  return values
}
