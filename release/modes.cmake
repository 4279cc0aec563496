# Before each package is made of what was staged: folders and files are readable by all, whatever the umask of who packs.
# CPack makes folders by that umask, and /usr with 0700 would be in a .deb.
execute_process(COMMAND chmod -R u=rwX,go=rX ${CPACK_TEMPORARY_DIRECTORY} COMMAND_ERROR_IS_FATAL ANY)
