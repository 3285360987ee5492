/** Where in a value something is: names of fields and numbers of entries. */
export type Path = readonly PropertyKey[]

/** Something wrong in a value, before it is known which line or flag that came from. */
export interface Fault {
  path: Path
  /** The field's name is wrong rather than its value. */
  isAboutName?: boolean
  /** What is wrong, without a full stop: completes "<field> ...", or is a clause by itself where the path is empty. */
  message: string
  /** What to write instead, in the imperative, without a full stop. Made from the schema's examples when missing. */
  remedy?: string
}

/** Something wrong in what a user wrote, and where. */
export interface Problem {
  /** The file, as the user named it; missing where there is none. */
  file?: string
  /** From 1. */
  line?: number
  /** From 1, in characters. */
  column?: number
  /** The command-line flag that said so, where it was one. */
  flag?: string
  /** The field, such as `resources.gpus` or `inputs[0].source`; empty for the whole. */
  path: string
  /** What is wrong, without a full stop: completes "<field> ...", or is a clause by itself where the path is empty. */
  message: string
  /** What to write instead, in the imperative, without a full stop. */
  remedy: string
}

/** One line for a person: `job.yaml:7:9: resources.gpus "four" is not a count. Write, for example, gpus: 1.` */
export function formatProblem(problem: Problem): string {
  const { file, line, column, flag, path, message, remedy } = problem
  const place = [file, line, column].filter((part) => part !== undefined).join(':')
  const subject = flag ?? path
  return `${place === '' ? '' : `${place}: `}${subject === '' ? '' : `${subject} `}${message}. ${capital(remedy)}${remedy.endsWith('?') ? '' : '.'}`
}

/** `inputs[0].source`, `inputs["data/x.bin"]` */
export function formatPath(path: Path): string {
  return path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`
      const name = String(part)
      if (!/^[\w-]+$/.test(name)) return `[${JSON.stringify(name)}]`
      return index === 0 ? name : `.${name}`
    })
    .join('')
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
